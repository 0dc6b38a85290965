# Holds 80 MiB and does nothing.
[App]
Name=Large
Type=notify
ExecStart=@PYTHON@ @HERE@/ballast 80
