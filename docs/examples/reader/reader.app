# A Swift program that takes part: build it with `swift build`, and install it as /usr/local/bin/reader.
[App]
Name=Reader
Type=notify
ExecStart=/usr/local/bin/reader
URLSchemes=reader

[Lifecycle]
BackgroundModes=push
