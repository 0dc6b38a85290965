# A program that knows nothing of Greenroom.
[App]
Name=Web server
ExecStart=@PYTHON@ -m http.server @PORT@ --bind 127.0.0.1 --directory @FOLDER@/site
