# Allocates 60 MiB and waits.
[App]
Name=Medium
Type=notify
ExecStart=@PYTHON@ @HERE@/ballast 60
