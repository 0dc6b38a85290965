# Holds 40 MiB and does nothing.
[App]
Name=Small
Type=notify
ExecStart=@PYTHON@ @HERE@/ballast 40
