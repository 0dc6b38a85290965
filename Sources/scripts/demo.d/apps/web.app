# An unmodified program.
[App]
Name=Web server
ExecStart=@PYTHON@ -m http.server @PORT@ --bind 127.0.0.1 --directory @FOLDER@/site
