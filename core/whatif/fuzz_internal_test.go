package whatif

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/ephemeralgo/ephemeral/core"
)

// Any file gives a trace that can be run, or an error that says what is wrong, and never needs much memory.
func FuzzRead(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte(magic + "\x02{}\x00\x02\x02\x02\x00\x00\x02\x02\xff\x10\x00"))
	f.Add([]byte(magic + "\xff\xff\xff\xff\x0f"))
	f.Add([]byte(magic + "\x02{}\x07\x04\x02\x02\x05\x02\x02"))
	f.Fuzz(func(t *testing.T, file []byte) {
		trace, err := Read(bytes.NewReader(file))
		if err != nil && !strings.HasPrefix(err.Error(), "whatif: ") {
			t.Errorf("got %v, want an error of whatif", err)
		}
		if trace == nil {
			if err == nil || errors.Is(err, io.ErrUnexpectedEOF) && bytes.HasPrefix(file, []byte(magic+"\x02{}")) {
				t.Fatalf("got no trace and %v", err)
			}
			return
		}
		if trace.Operations > len(file) {
			t.Errorf("%d operations from %d bytes", trace.Operations, len(file))
		}
		if _, err := Run(trace, trace.Options); err != nil {
			t.Errorf("the trace cannot be run: %v", err)
		}
	})
}

// A trace of a program that was killed has what was written before. Options that lack a lane are an error.
func TestPartOfATrace(t *testing.T) {
	trace := recording(t, loads[0].opts, false, loads[0].work)
	o := trace.Options
	o.Lanes = []core.Lane{{Name: "hot"}}
	o.Ageing = 0
	if _, err := Run(trace, o); err == nil || !strings.Contains(err.Error(), `"slow"`) {
		t.Errorf("got %v, want an error that names the lane", err)
	}
	o.Lanes, o.MaxConcurrency = nil, -1
	if _, err := Run(trace, o); err == nil {
		t.Error("options that are not valid can be run")
	}
	part := []byte(magic + "\x02{}\x00\x02\x02\x02\x00\x00\x02\x02\x00\x02")
	half, err := Read(bytes.NewReader(part))
	if !errors.Is(err, io.ErrUnexpectedEOF) || half == nil || half.Operations != 1 {
		t.Errorf("got %+v and %v, want one operation and that the end is missing", half, err)
	}
}
