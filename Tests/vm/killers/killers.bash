# The killers that are compared, for guest and density. Needs $killer and $load.
missing() {
    echo "killers: this machine has no $killer" >&2
    exit 0
}
case $killer in
greenroom) install_greenroom ;;
earlyoom) systemctl start earlyoom || missing ;;
nohang) systemctl start nohang || missing ;;
systemd-oomd)
    systemctl start systemd-oomd || missing
    systemctl set-property --runtime killers.slice ManagedOOMMemoryPressure=kill ManagedOOMMemoryPressureLimit=10%
    ;;
kernel | enough-memory) ;;
esac
