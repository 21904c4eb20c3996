// This file decides for which coordinator a goroutine works.

package core

import (
	"bytes"
	"reflect"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"

	"github.com/ephemeralgo/ephemeral/core/internal/frames"
)

// goroutineStacks returns the stacks of all goroutines by their numbers, each cut to 64 kB, without
// the frames that only encode numbers of engines. The program stands still while the runtime
// writes them.
func goroutineStacks() map[uint64]string {
	text := make([]byte, 64<<10)
	n := runtime.Stack(text, true)
	for ; n == len(text) && n < 64<<20; n = runtime.Stack(text, true) {
		text = make([]byte, 2*n)
	}
	stacks := map[uint64]string{}
	for block := range bytes.SplitSeq(text[:n], []byte("\n\ngoroutine ")) {
		block = bytes.TrimPrefix(block, []byte("goroutine "))
		number, _, _ := bytes.Cut(block, []byte(" "))
		if id, err := strconv.ParseUint(string(number), 10, 64); err == nil {
			stack := withoutEngineFrames(block)
			stacks[id] = "goroutine " + string(stack[:min(len(stack), 64<<10)])
		}
	}
	return stacks
}

// runsOn reports whether this goroutine works for the engine with that number, or calls its OnDone:
// whether the number is on the stack, in base 4. Each digit is a frame of engineFrame0 to
// engineFrame3, the highest digit innermost. engineFrame is outermost.
func runsOn(number uint64) (found bool) {
	n := uint64(0)
	frames.Walk(func(pc uintptr) (on bool) {
		if pc <= framesStart || pc > framesEnd {
			return true
		}
		digit := slices.IndexFunc(frameCode[:], func(code frameSpan) bool { return pc > code.start && pc <= code.end })
		switch {
		case digit < 0:
		case digit < 4:
			n = n<<2 | uint64(digit)
		default:
			found, n = n == number, 0
		}
		return !found
	})
	return found
}

// stackTrace is the stack of this goroutine as [debug.Stack] prints it, without the frames
// that only encode the engine's number.
func stackTrace() []byte { return withoutEngineFrames(debug.Stack()) }

func withoutEngineFrames(stack []byte) []byte {
	encodes := false
	lines := slices.DeleteFunc(bytes.SplitAfter(stack, []byte("\n")), func(line []byte) bool {
		file := encodes // the line below the function's line
		encodes = bytes.HasPrefix(line, engineFrameLine)
		return encodes || file
	})
	return bytes.Join(lines, nil)
}

var engineFrameLine = []byte(frames.Prefix() + "engine")

// engineFrame calls run with number on the stack, lowest digit outermost.
//
//go:noinline
func engineFrame(number uint64, run func()) { engineDigit(number, run) }

func engineDigit(number uint64, run func()) {
	if number == 0 {
		run()
		return
	}
	engineFrames[number&3](number>>2, run)
}

// engineFrames are engineFrame0 to engineFrame3 and engineFrame, and frameCode is the address
// range of their code. It identifies return addresses; to look up the names of functions would
// cost much more. Both are set in init because the functions refer to them.
var (
	engineFrames           [5]func(uint64, func())
	frameCode              [5]frameSpan
	framesStart, framesEnd uintptr
)

type frameSpan struct{ start, end uintptr }

func init() {
	engineFrames = [...]func(uint64, func()){engineFrame0, engineFrame1, engineFrame2, engineFrame3, engineFrame}
	for i, f := range &engineFrames {
		start := runtime.FuncForPC(reflect.ValueOf(f).Pointer()).Entry()
		end := start
		for runtime.FuncForPC(end+1) != nil && runtime.FuncForPC(end+1).Entry() == start {
			end++
		}
		frameCode[i].start, frameCode[i].end = start, end
		if framesStart == 0 || start < framesStart {
			framesStart = start
		}
		framesEnd = max(framesEnd, end)
	}
}

//go:noinline
func engineFrame0(rest uint64, run func()) { engineDigit(rest, run) }

//go:noinline
func engineFrame1(rest uint64, run func()) { engineDigit(rest, run) }

//go:noinline
func engineFrame2(rest uint64, run func()) { engineDigit(rest, run) }

//go:noinline
func engineFrame3(rest uint64, run func()) { engineDigit(rest, run) }
