//go:build unix

package main

import (
	"os"
	"time"
	"unsafe"
)

// chaosWrong says by how much the wall clock of the host is wrong.
var chaosWrong, _ = time.ParseDuration(os.Getenv("EPHEMERAL_CHAOS_CLOCK"))

// chaosNow is time.Now on a host with a wrong clock. The monotonic clock is right. With -clock, all
// packages of some processes have a copy of this file and call chaosNow in place of time.Now.
func chaosNow() time.Time {
	t := time.Now()
	// The first word of a time with both clocks has the seconds of the wall clock in bits 30 to 62.
	*(*uint64)(unsafe.Pointer(&t)) += uint64(chaosWrong/time.Second) << 30
	return t
}

var _ = chaosNow // here, nothing calls it
