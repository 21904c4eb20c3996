package ratelimit

import "os"

// Long says that model tests take their long form.
var Long = os.Getenv("EPHEMERAL_LONG") != ""
