# nginx as an app: a proxy in front of the sites, or a web server that is not always needed.
#
# Needs: the package nginx-light (or another nginx).
# Does: nginx takes the sockets that the variable NGINX names, each descriptor followed by ";". The addresses must be those of
#   nginx.conf. As greenroomd binds the port, nginx needs no root.
# Change: the port, here and in nginx.conf. A proxy that is always needed has IdleSec=infinity, or is an ordinary service of systemd.
#   NonBlocking=yes, so that no worker process waits in accept(2) if another one was faster.
[App]
Name=nginx
ExecStart=/usr/sbin/nginx -c /usr/share/doc/greenroom/examples/hosting/nginx.conf -e stderr
Type=listening
Role=worker
User=www-data
RuntimeDirectory=greenroom-nginx
Environment="NGINX=3;"

[Lifecycle]
IdleSec=10s
UnloadAfterSec=1h

[Wake]
ListenStream=0.0.0.0:8080
NonBlocking=yes
