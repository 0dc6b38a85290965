# Collects pushes and URLs: install collector.c, compiled, as /usr/local/bin/collector.
[App]
Name=Collector
Type=notify
ExecStart=/usr/local/bin/collector
StateDirectory=collector
URLSchemes=collect

[Lifecycle]
BackgroundModes=push
