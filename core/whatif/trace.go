package whatif

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/guard"
	"github.com/ephemeralgo/ephemeral/core/internal/tape"
)

// A Trace is what a [Recording] has written.
type Trace struct {
	Options    core.Options  // of the coordinator, when the recording began: those that decide what starts, and no functions
	Span       time.Duration // how long the recording was
	Operations int
	Dropped    uint64 // see [Counts]

	was        core.Options // resolved Options, also if the caller changes those
	keyed      bool
	operations []tape.Event // as they came
	gates      []tape.Event // moves of gates, as they came
}

// magic is how a file begins.
const magic = "ephemeral whatif 1\n"

// ends is the kind of the last event.
const ends = 0xff

// Bounds of what a trace may say. They keep the memory of a trace to some 100 bytes for each event, and 2 GB. A
// recording writes the nearest number within them.
const (
	maxHeader = 1 << 20
	maxEvents = 1 << 24
	maxTime   = 1 << 53 // 104 days
	maxCost   = 1 << 40
	maxCharge = 1 << 50
)

// header is the first part of a file. The fields besides Options and Keyed hide functions, which JSON cannot have.
type header struct {
	core.Options
	Keyed                             bool
	Sink, OnDone, OnSignal, OnRetract *struct{} `json:",omitempty"`
}

// coder writes and reads events. Times and ids are written as differences to those before.
type coder struct {
	began int64 // the recording
	id    uint64
	at    int64 // since then
}

const (
	flagBrief = 1 << iota
	flagStarted
	flagShut
	flagHeld
	flagKey  // has a key
	flagMore // has a cost, a charge or a time without a slot
)

func bit(is bool, flag byte) byte {
	if is {
		return flag
	}
	return 0
}

func (c *coder) append(b []byte, e *tape.Event) []byte {
	flags := bit(e.Brief, flagBrief) | bit(e.Started, flagStarted) | bit(e.Shut, flagShut) | bit(e.Held, flagHeld) |
		bit(e.Key != 0, flagKey) | bit(e.Away|e.Cost|e.Calls|e.More != 0, flagMore)
	b = append(b, byte(e.Kind), flags)
	b = binary.AppendVarint(b, int64(e.ID-c.id))
	at := within(-maxTime, e.At-c.began, maxTime)
	b = binary.AppendVarint(b, at-c.at)
	c.id, c.at = e.ID, at
	if e.Kind == tape.GateMoved {
		b = binary.AppendUvarint(b, uint64(e.Gate))
		b = binary.AppendVarint(b, within(-maxTime, e.At-e.Since, 2*maxTime))
		return binary.AppendVarint(b, within(-1, e.Expires-e.At, maxTime))
	}
	b = append(b, e.Lane, e.Class)
	if flags&flagKey != 0 {
		b = binary.LittleEndian.AppendUint64(b, e.Key)
	}
	b = binary.AppendVarint(b, within(0, e.Wait, maxTime))
	run := within(0, e.Run, maxTime)
	if flags&flagStarted != 0 {
		b = binary.AppendVarint(b, run)
	}
	if flags&flagMore != 0 {
		for _, n := range [...]int64{within(0, e.Away, run), within(0, e.Cost, maxCost), within(-maxCharge, e.Calls, maxCharge), within(-maxCharge, e.More, maxCharge)} {
			b = binary.AppendVarint(b, n)
		}
	}
	return b
}

func within(low, n, high int64) int64 { return max(low, min(n, high)) }

// decoder reads numbers until the first error.
type decoder struct {
	*bufio.Reader
	err error
}

func (d *decoder) byte() (b byte) {
	if d.err == nil {
		b, d.err = d.ReadByte()
	}
	return b
}

// number reads a number from low to high.
func (d *decoder) number(low, high int64) (n int64) {
	if d.err == nil {
		n, d.err = binary.ReadVarint(d)
	}
	if d.err == nil && (n < low || n > high) {
		n, d.err = 0, fmt.Errorf("a number is %d, but must be from %d to %d", n, low, high)
	}
	return n
}

func (d *decoder) unsigned() (n uint64) {
	if d.err == nil {
		n, d.err = binary.ReadUvarint(d)
	}
	return n
}

func (c *coder) read(d *decoder, kind tape.Kind) (e tape.Event) {
	flags := d.byte()
	e.Kind, e.Brief, e.Started, e.Shut, e.Held = kind, flags&flagBrief != 0, flags&flagStarted != 0, flags&flagShut != 0, flags&flagHeld != 0
	c.id += uint64(d.number(-1<<62, 1<<62))
	c.at += d.number(-maxTime-c.at, maxTime-c.at)
	e.ID, e.At = c.id, c.at
	if kind == tape.GateMoved {
		e.Gate = uint16(d.unsigned() & 0xffff)
		e.Since = e.At - d.number(-maxTime, 2*maxTime)
		if e.Expires = e.At + d.number(-1, maxTime); e.Expires == e.At+maxTime {
			e.Expires = never
		}
		return e
	}
	e.Lane, e.Class = d.byte(), d.byte()
	if flags&flagKey != 0 {
		var key [8]byte
		for i := range key {
			key[i] = d.byte()
		}
		e.Key = binary.LittleEndian.Uint64(key[:])
	}
	e.Wait = d.number(0, maxTime)
	if e.Started {
		e.Run = d.number(0, maxTime)
	}
	if flags&flagMore != 0 {
		e.Away, e.Cost = d.number(0, e.Run), d.number(0, maxCost)
		e.Calls, e.More = d.number(-maxCharge, maxCharge), d.number(-maxCharge, maxCharge)
	}
	return e
}

// Read reads what a [Recording] has written. If that ends early, because the program was killed, the error
// matches [io.ErrUnexpectedEOF], and the Trace has what came before. After other errors, the Trace is nil.
//
// A trace takes some 100 bytes of memory for each operation and each move of a gate. A file can have 16,777,216 of them,
// and then takes 2 GB, even if the file has only 130 MB: read no file of somebody whom you do not trust with that.
// Times of more than 104 days were written as 104 days.
func Read(r io.Reader) (*Trace, error) {
	d := &decoder{Reader: bufio.NewReaderSize(r, 1<<16)}
	broken := func(err error) error { return fmt.Errorf("whatif: this is not a trace: %w", err) }
	start := make([]byte, len(magic))
	if n, _ := io.ReadFull(d, start); string(start[:n]) != magic {
		return nil, broken(fmt.Errorf("it begins with %.20q, but must begin with %q", start[:n], magic))
	}
	n := d.unsigned()
	if d.err == nil && n > maxHeader {
		d.err = fmt.Errorf("its options take %d bytes, but can take %d", n, maxHeader)
	}
	if d.err != nil {
		return nil, broken(d.err)
	}
	head, err := io.ReadAll(io.LimitReader(d, int64(n)))
	var h header
	if err == nil {
		err = json.Unmarshal(head, &h)
	}
	if err != nil {
		return nil, broken(err)
	}
	resolved, _, err := tape.Resolve(h.Options, h.Keyed)
	if err != nil {
		return nil, broken(err)
	}
	t := &Trace{Options: h.Options, was: resolved.(core.Options), keyed: h.Keyed}
	t.was.Lanes, t.was.Classes = slices.Clone(t.was.Lanes), slices.Clone(t.was.Classes)
	err = t.read(d, t.was)
	switch {
	case guard.Is(err, io.EOF) || guard.Is(err, io.ErrUnexpectedEOF):
		err = fmt.Errorf("whatif: the trace ends after %d operations, without its end: %w", len(t.operations), io.ErrUnexpectedEOF)
	case err != nil:
		return nil, broken(err)
	}
	t.settle()
	return t, err
}

// read reads the events.
func (t *Trace) read(d *decoder, opts core.Options) error {
	lanes, classes := max(1, len(opts.Lanes)), 1+len(opts.Classes)
	var c coder
	for {
		kind := d.byte()
		if kind == ends && d.err == nil {
			t.Span, t.Dropped = time.Duration(min(d.unsigned(), maxTime)), d.unsigned()
			return d.err
		}
		e := c.read(d, tape.Kind(kind))
		e.Order = len(t.operations) + len(t.gates)
		switch {
		case d.err != nil:
			return d.err
		case e.Kind >= tape.Kinds:
			return fmt.Errorf("event %d is of kind %d, which is not known", e.Order+1, kind)
		case e.Kind != tape.GateMoved && (int(e.Lane) >= lanes || int(e.Class) >= classes):
			return fmt.Errorf("operation %d has lane %d and class %d, but there are %d and %d", len(t.operations)+1, e.Lane, e.Class, lanes, classes)
		case e.Order == maxEvents:
			return fmt.Errorf("it has more than %d events", maxEvents)
		case e.Kind == tape.GateMoved:
			t.gates = append(t.gates, e)
		default:
			t.operations = append(t.operations, e)
			t.Span = max(t.Span, time.Duration(e.At+e.Wait+e.Run))
		}
	}
}

// settle puts the events in order, and gives each operation without a run the run of the one before it in its
// lane and class.
func (t *Trace) settle() {
	t.Operations = len(t.operations)
	slices.SortStableFunc(t.operations, func(a, b tape.Event) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.ID, b.ID), cmp.Compare(a.Kind, b.Kind))
	})
	type place struct{ lane, class uint8 }
	runs := map[place]int64{}
	for i := len(t.operations) - 1; i >= 0; i-- { // the first one of each, for those before it
		if e := &t.operations[i]; e.Started && e.Kind != tape.Alive {
			runs[place{e.Lane, e.Class}] = e.Run
		}
	}
	for i := range t.operations {
		e := &t.operations[i]
		at := place{e.Lane, e.Class}
		if e.Started && e.Kind != tape.Alive {
			runs[at] = e.Run
		} else {
			e.Run = max(e.Run, runs[at])
		}
	}
}
