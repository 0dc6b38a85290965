# A PHP-FPM per tenant.
#
# Needs: the package php-fpm (PHP 8.2). The scripts of the tenant NAME are in /srv/www/NAME; nginx.conf passes their paths.
# Does: PHP-FPM takes the socket that FPM_SOCKETS names: its address, the same as in php-fpm.conf, and the descriptor 3. It reports that it
#   is ready (Type=notify). It removes the file of its socket when it ends, if it may: as www-data it may not, because /run/sites
#   belongs to root.
# Change: User=, pm.max_children in php-fpm.conf.
[App]
Name=PHP %i
ExecStart=/usr/sbin/php-fpm8.2 --nodaemonize --fpm-config /usr/share/doc/greenroom/examples/hosting/php-fpm.conf
Type=notify
Role=worker
User=www-data
Environment=FPM_SOCKETS=/run/sites/%i.sock=3 FPM_LISTEN=/run/sites/%i.sock

[Lifecycle]
IdleSec=10s
UnloadAfterSec=1h

[Memory]
MemoryMax=512M

[Wake]
ListenStream=/run/sites/%i.sock
SocketUser=www-data
SocketMode=0660
