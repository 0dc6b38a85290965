/// What the log of greenroomd says about this library.
let libraryVersion = "0.2.0"
