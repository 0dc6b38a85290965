# Programs that stay as they are: a read-only folder, and digests of fs-verity.
image=/var/tmp/verity.img
mnt=/srv/verity
mkdir -p $mnt
truncate -s 32M $image
mkfs.ext4 -q -O verity -b 4096 $image
check "a file system with fs-verity is mounted" mount -o loop $image $mnt
cp /usr/bin/sleep $mnt/program
cat >/run/verity.py <<'END'
# Enables fs-verity for a file with SHA-256 (FS_IOC_ENABLE_VERITY), and prints its digest (FS_IOC_MEASURE_VERITY).
import fcntl, struct, sys
file = open(sys.argv[1], "rb")
fcntl.ioctl(file, 0x40806685, struct.pack("<III", 1, 1, 4096) + bytes(116))
measured = fcntl.ioctl(file, 0xC0046686, struct.pack("<HH", 0, 32) + bytes(32))
print(measured[4:36].hex())
END
digest=$(python3 /run/verity.py $mnt/program)
check "fs-verity has a digest" eval '[ ${#digest} = 64 ]'
check "the kernel refuses to write the program" fails eval ": >>$mnt/program"
zeroes=$(printf '%064d' 0)
for app in verity other; do
    [ $app = verity ] && wanted=$digest || wanted=$zeroes
    printf '%s\n' '[App]' "ExecStart=$mnt/program 3600" User=user ProgramDigest=fsverity-sha256:"$wanted" >$apps/$app.app
done
printf '%s\n' '[App]' "ExecStart=/usr/bin/sleep 3600" User=user "ProgramDigest=sha256:$(sha256sum /usr/bin/sleep | cut -c1-64)" \
    >$apps/contents.app
printf '%s\n' '[App]' "ExecStart=$mnt/program 3600" User=user '[Lifecycle]' ReadOnlyProgram=yes >$apps/fixed.app
ctl reload >/dev/null
check "a program with its digest of fs-verity is executed" ctl launch verity
check "one with its digest of SHA-256, too" ctl launch contents
check "one with another digest is not" fails ctl launch other
check "the receipt has both digests" receipt other "$digest" "$zeroes"
check "verify has the digest, too" has "$(ctl verify $apps/other.app)" "$digest"

# The unit does not have CAP_SYS_ADMIN.
check "without CAP_SYS_ADMIN an app with ReadOnlyProgram= is not launched" fails ctl launch fixed
check "the receipt says why" receipt fixed CAP_SYS_ADMIN
check "doctor says so, too" has "$(ctl doctor)" "CapabilityBoundingSet=CAP_SYS_ADMIN"
mkdir -p /run/systemd/system/greenroomd.service.d
printf '%s\n' '[Service]' CapabilityBoundingSet=CAP_SYS_ADMIN >/run/systemd/system/greenroomd.service.d/50-mount.conf
systemctl daemon-reload
systemctl restart greenroomd
check "with it, it is" wait_for 30 ctl launch fixed
check "its folder is read-only" grep -q " $mnt ro," /proc/"$(pid fixed)"/mountinfo
check "that of the machine is not" fails grep -q " $mnt ro," /proc/self/mountinfo
for app in verity contents fixed; do ctl terminate $app >/dev/null; done
rm /run/systemd/system/greenroomd.service.d/50-mount.conf $apps/{verity,other,contents,fixed}.app
systemctl daemon-reload
systemctl restart greenroomd
check "the file system is unmounted: no namespace keeps it" wait_for 20 umount $mnt
rm $image
