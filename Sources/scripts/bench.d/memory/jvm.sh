#!/bin/sh
# A JVM that keeps 250 MB of arrays.
set -eu
command -v javac >/dev/null
cat >"$1/Heap.java" <<'end'
public class Heap {
    static byte[][] kept = new byte[250][];
    public static void main(String[] arguments) throws Exception {
        for (int i = 0; i < kept.length; i++) kept[i] = new byte[1 << 20];
        new java.io.File(arguments[0] + "/loaded").createNewFile();
        Thread.sleep(Long.MAX_VALUE);
    }
}
end
javac -d "$1" "$1/Heap.java"
exec java -Xms300m -Xmx512m -cp "$1" Heap "$1"
