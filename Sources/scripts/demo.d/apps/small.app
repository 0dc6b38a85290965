# Allocates 40 MiB and waits.
[App]
Name=Small
Type=notify
ExecStart=@PYTHON@ @HERE@/ballast 40
