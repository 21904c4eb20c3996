//go:build unix

package main

import (
	"os"
	"strconv"
	"strings"
	"time"
	"unsafe"
)

// chaosClock says when the clock of the host was set, and by how much it is wrong since then: numbers
// of seconds, "AT=BY AT=BY", in the order of time.
var chaosClock = strings.Fields(os.Getenv("EPHEMERAL_CHAOS_CLOCK"))

// chaosNow is time.Now on a host whose clock was set. The monotonic clock goes on. With -clock, all
// packages of some processes have a copy of this file and call chaosNow in place of time.Now.
func chaosNow() time.Time {
	t := time.Now()
	wrong := int64(0)
	for _, set := range chaosClock {
		at, by, _ := strings.Cut(set, "=")
		if from, _ := strconv.ParseInt(at, 10, 64); t.Unix() >= from {
			wrong, _ = strconv.ParseInt(by, 10, 64)
		}
	}
	// The first word of a time with both clocks has the seconds of the wall clock in bits 30 to 62.
	*(*uint64)(unsafe.Pointer(&t)) += uint64(wrong) << 30
	return t
}
