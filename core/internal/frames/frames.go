// Package frames answers questions from the stack of a goroutine.
package frames

import (
	"runtime"
	"strings"
)

// Of counts the frames on this goroutine's stack, up to most, of functions whose
// names have that prefix.
func Of(function string, most int) (n int) {
	Walk(func(pc uintptr) bool {
		if f := runtime.FuncForPC(pc - 1); f != nil && strings.HasPrefix(f.Name(), function) {
			n++
		}
		return n < most
	})
	return n
}

// Walk calls visit with the return addresses on this goroutine's stack, innermost
// first, until visit returns false.
func Walk(visit func(pc uintptr) bool) {
	var pcs [64]uintptr
	for skip := 2; ; skip += len(pcs) {
		got := runtime.Callers(skip, pcs[:])
		for _, pc := range pcs[:got] {
			if !visit(pc) {
				return
			}
		}
		if got < len(pcs) {
			return
		}
	}
}

// Goroutine is the number by which the runtime tells this goroutine from others.
func Goroutine() uint64 {
	var text [64]byte // "goroutine 123 [running]: ..."
	n := uint64(0)
	for _, c := range text[len("goroutine "):runtime.Stack(text[:], false)] {
		if c < '0' || c > '9' {
			break
		}
		n = 10*n + uint64(c-'0')
	}
	return n
}

// Prefix returns the prefix of the names of the functions of the caller's package.
func Prefix() string {
	pc, _, _, _ := runtime.Caller(1)
	name := runtime.FuncForPC(pc).Name()
	dir := strings.LastIndexByte(name, '/') + 1
	return name[:dir+strings.IndexByte(name[dir:], '.')+1]
}
