import Linux

/// What looks at apps in the background and while they are suspended, and what limits them.
struct BackgroundParts {
    let work: WorkMeter
    let inputs: InputWatcher
    let accessories: Accessories
    /// Where the open GPUs of processes are described; elsewhere in a test: not each machine has a GPU.
    var gpuDescriptors = ProcFS()
    let autogroups: AutogroupQueue
    let secondSettings: SecondSettings
}
