/// What measures, protects and releases the memory of apps.
struct AppMemory {
    let watch: MemoryWatch
    let sampler: MemorySampler
    let footprints: FootprintMeter
    let protection: MemoryProtection
    let kernelKills: KernelKills
    let reclaimer: MemoryReclaimer
    let releaser: MemoryReleaser
}
