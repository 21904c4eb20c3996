package ratelimit

import (
	"os"

	"github.com/ephemeralgo/ephemeral/core/coretest"
)

// Long says that model tests take their long form. The race detector sees nothing new in it.
var Long = os.Getenv("EPHEMERAL_LONG") != "" && !coretest.Race
