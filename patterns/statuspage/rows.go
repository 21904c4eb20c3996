package statuspage

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/progress"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// An object is one in JSON, for which there is no type.
type object = map[string]any

// An operationRow is an operation in JSON.
type operationRow struct {
	ID          core.OperationID `json:"id"`
	Coordinator string           `json:"coordinator"`
	Parent      core.OperationID `json:"parent,omitempty"`
	Key         string           `json:"key,omitempty"`
	Lane        string           `json:"lane,omitempty"`
	Class       string           `json:"class,omitempty"`
	Status      string           `json:"status"`
	Enqueued    string           `json:"enqueued"`
	Started     string           `json:"started,omitempty"`
	Finished    string           `json:"finished,omitempty"`
	Error       string           `json:"error,omitempty"`
	Item        string           `json:"item,omitempty"`     // its type
	ItemText    string           `json:"itemText,omitempty"` // see Options.Show
	Progress    object           `json:"progress,omitempty"` // done, total, text
	Pins        int              `json:"pins,omitempty"`
	Signals     int              `json:"signals,omitempty"` // how many
	explained
}

// explained says why an operation waits.
type explained struct {
	Text    string    `json:"waits,omitempty"`
	Reasons []waitRow `json:"waitsFor,omitempty"`
}

// A waitRow is one reason why an operation waits.
type waitRow struct {
	Kind        core.ReasonKind  `json:"kind"`
	Text        string           `json:"text"`
	ID          core.OperationID `json:"id,omitempty"`          // the operation that it waits for
	Coordinator string           `json:"coordinator,omitempty"` // of that operation
	Since       string           `json:"since,omitempty"`
	Expires     string           `json:"expires,omitempty"` // when the wait ends by itself
	Forced      string           `json:"forced,omitempty"`  // when the operation starts in spite of the signal
}

// A signalRow is a signal in JSON.
type signalRow struct {
	Seq         uint64           `json:"seq"`
	Time        string           `json:"time"`
	Name        string           `json:"name"`
	Key         string           `json:"key,omitempty"`
	Operation   core.OperationID `json:"operation,omitempty"`
	Source      string           `json:"source,omitempty"`
	Coordinator string           `json:"coordinator,omitempty"` // the coordinator's id, if the page shows it
	Held        bool             `json:"held,omitempty"`
	Node        string           `json:"node,omitempty"`    // the process that it comes from
	Payload     string           `json:"payload,omitempty"` // its type
	Causes      []causeRow       `json:"causes,omitempty"`  // the first one first

	OffsetMS *int64    `json:"offsetMs,omitempty"` // of the view of an operation: milliseconds since it was enqueued
	Gates    []gateRow `json:"gates,omitzero"`     // of held signals: those that the signal closes
}

func (p *Page) operationRow(c *coordinator, s *core.Snapshot) operationRow {
	row := operationRow{
		ID: s.ID, Coordinator: c.id, Parent: s.Parent, Key: p.redacted(s.Key), Lane: cut(s.Lane), Class: cut(s.Class),
		Status: s.Status.String(), Enqueued: stamp(s.Enqueued), Started: stamp(s.Started), Finished: stamp(s.Finished),
		Item: typeOf(s.Item), Pins: s.Pins, Signals: len(s.Signals),
	}
	if s.Err != nil {
		row.Error = p.said(s.Err.Error)
	}
	if show := p.opts.Show; show != nil && s.Item != nil {
		row.ItemText = p.said(func() string { return show(s.Item) })
	}
	for i := len(s.Signals) - 1; i >= 0; i-- {
		if r, ok := progress.Reports.From(s.Signals[i]); ok {
			row.Progress = object{"done": r.Current, "total": r.Total, "text": r.String()}
			break
		}
	}
	return row
}

// signalRow is the row of a signal. It names the coordinator if the page shows it.
func (p *Page) signalRow(s signals.Signal) signalRow {
	return signalRow{
		Seq: s.Seq, Time: stamp(s.Time), Name: p.redacted(s.Name), Key: p.redacted(s.Key), Operation: s.Operation,
		Source: cut(s.Source), Coordinator: p.locate(s.Operation, s.Source), Held: s.Held, Node: cut(s.Node),
		Payload: typeOf(s.Payload()), Causes: p.causes(s),
	}
}

// locate returns the id of the coordinator of an operation, or "" for none. If none of those with the given name shows the
// operation, it is the last of them.
func (p *Page) locate(id core.OperationID, name string) (last string) {
	for _, c := range p.coordinators {
		if id == 0 || name != "" && c.is.Name() != name {
			continue
		}
		if _, ok := c.is.Lookup(id); ok {
			return c.id
		}
		if name != "" {
			last = c.id
		}
	}
	return last
}

// A causeRow is a signal that led to another one.
type causeRow struct {
	Name        string           `json:"name"`
	Operation   core.OperationID `json:"operation,omitempty"`   // that raised it
	Coordinator string           `json:"coordinator,omitempty"` // "": the page does not show that operation, or no longer
}

func (p *Page) causes(s signals.Signal) (rows []causeRow) {
	for _, c := range s.Causes() {
		rows = append(rows, causeRow{p.redacted(c.Name), c.Operation, p.locate(c.Operation, "")})
	}
	return rows
}

// explain says why an operation waits. With all, it adds the reasons of the operations that
// this one waits for.
func (p *Page) explain(c *coordinator, id core.OperationID, all bool) (e explained) {
	x, _ := c.is.Explain(id)
	e.Reasons = []waitRow{}
	var texts []string
	for _, r := range x.Reasons {
		isOwn := r.Operation == id
		if !isOwn && !all {
			continue
		}
		row := waitRow{Kind: r.Kind, Text: p.words(r), Since: stamp(r.Since), Expires: stamp(r.Expires), Forced: stamp(r.Forced)}
		row.ID = cmp.Or(r.Signal.Operation, r.Holder)
		row.Coordinator = p.locate(row.ID, r.Of+r.Signal.Source)
		if isOwn {
			texts = append(texts, row.Text)
		} else {
			row.Text = fmt.Sprintf("operation %d: %s", r.Operation, row.Text)
		}
		e.Reasons = append(e.Reasons, row)
	}
	e.Text = cut(strings.Join(texts, "; "))
	return e
}

// maxText is how many bytes of a text are shown.
const maxText = 1000

func (p *Page) redacted(text string) string {
	if text == "" {
		return ""
	}
	return cut(p.opts.Redact(text))
}

// said returns a text of the program, or that of a panic.
func (p *Page) said(text func() string) (said string) {
	panicked := p.guarded(func() { said = p.redacted(text()) })
	return cmp.Or(panicked, said)
}

// cut makes a text fit to be shown: not too long, and UTF-8, because JSON can have nothing else.
func cut(text string) string { return cutTo(text, maxText) }

func cutTo(text string, most int) string {
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}

// typeOf returns the type: nothing else is shown of values and payloads, and of items without Options.Show.
func typeOf(v any) string { return cut(strings.TrimPrefix(fmt.Sprintf("%T", v), "<nil>")) }

func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z")
}
