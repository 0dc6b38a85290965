# A program that fills memory as fast as the machine can give it, while eight suspended apps have what it needs.
idle=(idle1 idle2 idle3 idle4 idle5 idle6 idle7 idle8)
for app in "${idle[@]}"; do manifest "$app" "allocate 60000000 ready"; done
ctl reload >/dev/null

# fill ROUNDS: prints in how many of them the newcomer survived.
fill() {
    local survived=0 kills=0 round app
    dmesg -C
    for ((round = 1; round <= $1; round++)); do
        for app in "${idle[@]}"; do is "$app" suspended >/dev/null || background "$app" >/dev/null; done
        manifest newcomer "allocate $((($(available) + 200) * 1000000)) ready"
        printf '%s\n' '[Lifecycle]' LaunchDeadlineSec=120s >>$apps/newcomer.app
        ctl reload >/dev/null
        if ctl launch newcomer >/dev/null 2>&1 && is newcomer active >/dev/null; then
            survived=$((survived + 1))
        else
            echo "     round $round: $(ctl receipts -n 3 2>/dev/null | tail -n 3)" >&2
        fi
        for app in "${idle[@]}"; do is "$app" suspended >/dev/null || kills=$((kills + 1)); done
        ctl terminate newcomer >/dev/null 2>&1
        wait_for 30 is newcomer notRunning >/dev/null
    done
    echo "     $kills suspended apps were killed in $1 rounds, $(dmesg | grep -c 'Killed process') processes by the kernel" >&2
    echo $survived
}

rounds=15 rounds_beside=5
[ ! -e quick ] || rounds=4 rounds_beside=1
check "a program that fills memory without a pause survives $rounds times of $rounds" same "$(fill $rounds)" $rounds
# Memory that no kill of an app frees, on a machine without swap: all that is left to the kernel is the code of programs.
head -c 300M /dev/zero >/dev/shm/other-memory
check "beside 300 MiB in /dev/shm it survives $rounds_beside times of $rounds_beside" same "$(fill $rounds_beside)" $rounds_beside
rm -f /dev/shm/other-memory
check "the daemon was not killed" systemctl is-active greenroomd
for app in "${idle[@]}"; do ctl terminate "$app" >/dev/null 2>&1; done
rm -f $apps/newcomer.app $apps/idle?.app
ctl reload >/dev/null
