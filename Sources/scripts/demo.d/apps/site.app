# The same program as a worker.
[App]
Name=Site
ExecStart=@PYTHON@ -m http.server @WORKERPORT@ --bind 127.0.0.1 --directory @FOLDER@/site
Type=listening
Role=worker

[Lifecycle]
IdleSec=1s
