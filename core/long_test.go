package core

import "github.com/ephemeralgo/ephemeral/core/internal/long"

var Often = long.Often
