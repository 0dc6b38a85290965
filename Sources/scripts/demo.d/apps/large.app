# Allocates 80 MiB and waits.
[App]
Name=Large
Type=notify
ExecStart=@PYTHON@ @HERE@/ballast 80
