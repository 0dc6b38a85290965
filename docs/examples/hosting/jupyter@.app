# A Jupyter notebook server per user, which the first connection launches.
#
# Needs: the package jupyter-notebook. NAME is a user of the machine.
# Does: Jupyter cannot take sockets of greenroomd, so behind-proxyd puts systemd-socket-proxyd in front of it: a reverse proxy uses
#   /run/jupyter-NAME.sock. The server and its kernels are suspended together when no kernel computes and no request waits; open
#   notebooks stay connected. It has no UnloadAfterSec=, because the variables of the kernels would be lost.
# Change: the token: the reverse proxy must authenticate users, or give each one a token.
[App]
Name=Notebooks of %i
ExecStart=/usr/share/doc/greenroom/examples/hosting/behind-proxyd %t/jupyter-%i/internal.sock /usr/bin/jupyter-notebook --sock=%t/jupyter-%i/internal.sock --no-browser --NotebookApp.allow_remote_access=True --NotebookApp.token= --NotebookApp.password=
Type=listening
Role=worker
User=%i
WorkingDirectory=~
RuntimeDirectory=jupyter-%i

[Lifecycle]
LaunchDeadlineSec=1min
TerminateDeadlineSec=30s
IdleSec=30s

[Memory]
MemoryMax=4G

[Wake]
ListenStream=/run/jupyter-%i.sock
SocketGroup=www-data
SocketMode=0660
