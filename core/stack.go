package core

import (
	"reflect"
	"runtime"
	"strings"
)

// Three questions have no other answer in Go than the goroutine's own stack: "how
// many deliveries am I inside of?", asked by a cancellation that would otherwise
// wait for itself, by a new handler and by a raise that may be part of an endless
// loop; "who am I?", asked by such a raise; and "which coordinator's operation runs
// here?", asked by Close, Drain and friends, which have no context to tell them.
// All are asked rarely, and never by a raise that nobody suspects.

// deliveries counts the deliveries that this goroutine is inside of, up to most.
// That deliverSome is never inlined, because it defers, makes it cheap.
func deliveries(most int) (n int) {
	var pcs [64]uintptr
	for skip := 2; ; skip += len(pcs) {
		got := runtime.Callers(skip, pcs[:])
		for _, pc := range pcs[:got] {
			if f := runtime.FuncForPC(pc - 1); f != nil && strings.HasPrefix(f.Name(), deliverFunction) {
				if n++; n == most {
					return n
				}
			}
		}
		if got < len(pcs) {
			return n
		}
	}
}

// witness is what a goroutine's stack tells about it.
type witness struct {
	goroutine uint64
	depth     int // deliveries it is inside of, up to crowd
}

func askStack() witness { return witness{goroutineID(), deliveries(crowd)} }

// goroutineID is the number by which the runtime tells this goroutine from others.
func goroutineID() uint64 {
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

// blocking reports whether this goroutine is inside an OnBlocked already.
func blocking() (inside bool) {
	walkStack(func(function string) bool {
		inside = function == blockedFunction
		return !inside
	})
	return inside
}

// runningOn returns the number of the engine whose worker this goroutine is, or 0.
// A worker's stack spells it in base 4, one frame of digit0 to digit3 each, the
// highest digit innermost.
func runningOn() uint64 {
	var (
		number uint64
		pcs    [64]uintptr
	)
	for skip := 2; ; skip += len(pcs) {
		n := runtime.Callers(skip, pcs[:])
		for _, pc := range pcs[:n] {
			for digit, code := range &digits {
				if code.start < pc && pc <= code.end {
					number = number<<2 | uint64(digit)
				}
			}
		}
		if n < len(pcs) {
			return number
		}
	}
}

// digits is where the code of digit0 to digit3 lies. Return addresses are told
// apart by it, because naming their functions would cost much more.
var digits = func() (digits [4]struct{ start, end uintptr }) {
	for i, f := range []func(uint64, func()){digit0, digit1, digit2, digit3} {
		start := runtime.FuncForPC(reflect.ValueOf(f).Pointer()).Entry()
		end := start
		for runtime.FuncForPC(end+1) != nil && runtime.FuncForPC(end+1).Entry() == start {
			end++
		}
		digits[i].start, digits[i].end = start, end
	}
	return digits
}()

var (
	packagePrefix   = findPackagePrefix()
	deliverFunction = packagePrefix + "deliverSome["
	blockedFunction = packagePrefix + "(*Sink).tellBlocked"
)

// findPackagePrefix returns what the names of this package's functions start with.
func findPackagePrefix() string {
	pc, _, _, _ := runtime.Caller(0)
	name := runtime.FuncForPC(pc).Name()
	return strings.TrimSuffix(name, "findPackagePrefix")
}

// walkStack calls visit with the name of each function on this goroutine's stack,
// innermost first, until visit returns false.
func walkStack(visit func(function string) bool) {
	var pcs [64]uintptr
	for skip := 2; ; {
		n := runtime.Callers(skip, pcs[:])
		frames := runtime.CallersFrames(pcs[:n])
		for more := n > 0; more; {
			var f runtime.Frame
			f, more = frames.Next()
			if !visit(f.Function) {
				return
			}
		}
		if n < len(pcs) {
			return
		}
		skip += n
	}
}

// spell calls run with number spelled on the stack, lowest digit outermost.
func spell(number uint64, run func()) {
	if number == 0 {
		run()
		return
	}
	switch number & 3 {
	case 0:
		digit0(number>>2, run)
	case 1:
		digit1(number>>2, run)
	case 2:
		digit2(number>>2, run)
	case 3:
		digit3(number>>2, run)
	}
}

//go:noinline
func digit0(rest uint64, run func()) { spell(rest, run) }

//go:noinline
func digit1(rest uint64, run func()) { spell(rest, run) }

//go:noinline
func digit2(rest uint64, run func()) { spell(rest, run) }

//go:noinline
func digit3(rest uint64, run func()) { spell(rest, run) }
