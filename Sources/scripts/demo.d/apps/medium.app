# Holds 60 MiB and does nothing.
[App]
Name=Medium
Type=notify
ExecStart=@PYTHON@ @HERE@/ballast 60
