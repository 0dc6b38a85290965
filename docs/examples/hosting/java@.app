# A server per tenant in a Java virtual machine.
#
# Needs: the package openjdk-17-jdk-headless. Web.java is beside this file; /srv/www/NAME has the files of the site.
# Does: Java takes a listening socket as its standard input (System.inheritedChannel), so a shell moves the descriptor 3 there.
#   Jetty (ServerConnector.setInheritChannel) and Tomcat (useInheritedChannel of the connector) take it in the same way. Without
#   -XX:-UsePerfData the virtual machine holds a file lock as long as it runs, so it is suspended later.
# Change: -Xmx, User=. A program in a .jar file starts faster than a source file, which is compiled at each launch.
[App]
Name=Java server %i
ExecStart=/bin/sh -c "exec /usr/bin/java -Xmx64m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData /usr/share/doc/greenroom/examples/hosting/Web.java <&3 3<&-"
Type=listening
Role=worker
User=www-data
WorkingDirectory=/srv/www/%i

[Lifecycle]
LaunchDeadlineSec=1min
IdleSec=10s
UnloadAfterSec=4h

[Memory]
MemoryMax=512M

[Wake]
ListenStream=/run/sites/%i.sock
SocketUser=www-data
SocketMode=0660
