package statuspage

import (
	"fmt"
	"strings"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/progress"
)

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
	Item        string           `json:"item,omitempty"` // its type
	Progress    *progressRow     `json:"progress,omitempty"`
	Pins        int              `json:"pins,omitempty"`
	Signals     int              `json:"signals,omitempty"` // how many
	explained
}

// explained says why an operation waits.
type explained struct {
	Waits    string    `json:"waits,omitempty"`
	WaitsFor []waitRow `json:"waitsFor,omitempty"`
}

type progressRow struct {
	Done  int64  `json:"done"`
	Total int64  `json:"total"`
	Text  string `json:"text"`
}

// A waitRow is one reason of an operation to wait.
type waitRow struct {
	Kind        core.ReasonKind  `json:"kind"`
	Text        string           `json:"text"`
	ID          core.OperationID `json:"id,omitempty"`          // that it waits for
	Coordinator string           `json:"coordinator,omitempty"` // of that
	Since       string           `json:"since,omitempty"`
	Expires     string           `json:"expires,omitempty"` // when the wait ends by itself
	Forced      string           `json:"forced,omitempty"`  // when it starts in spite of the signal
}

// A signalRow is a signal in JSON.
type signalRow struct {
	Seq         uint64           `json:"seq"`
	Time        string           `json:"time"`
	Name        string           `json:"name"`
	Key         string           `json:"key,omitempty"`
	Operation   core.OperationID `json:"operation,omitempty"`
	Source      string           `json:"source,omitempty"`
	Coordinator string           `json:"coordinator,omitempty"` // its id, if it is on the page
	Held        bool             `json:"held,omitempty"`
	Payload     string           `json:"payload,omitempty"` // its type
	Causes      []string         `json:"causes,omitempty"`  // names, the first one first
}

func (p *Page) operationRow(c *coordinator, s *core.Snapshot) operationRow {
	row := operationRow{
		ID: s.ID, Coordinator: c.id, Parent: s.Parent, Key: p.redacted(s.Key), Lane: s.Lane, Class: s.Class,
		Status: s.Status.String(), Enqueued: stamp(s.Enqueued), Started: stamp(s.Started), Finished: stamp(s.Finished),
		Item: typeOf(s.Item), Pins: s.Pins, Signals: len(s.Signals),
	}
	if s.Err != nil {
		row.Error = p.redacted(s.Err.Error())
	}
	for i := len(s.Signals) - 1; i >= 0; i-- {
		if r, ok := progress.Reports.From(s.Signals[i]); ok {
			row.Progress = &progressRow{r.Current, r.Total, r.String()}
			break
		}
	}
	return row
}

// signalRow is the row of a signal. Its coordinator is to be one that the page shows.
func (p *Page) signalRow(s core.Signal) signalRow {
	row := signalRow{
		Seq: s.Seq, Time: stamp(s.Time), Name: p.redacted(s.Name), Key: p.redacted(s.Key), Operation: s.Operation,
		Source: s.Source, Held: s.Held, Payload: typeOf(s.Payload()),
	}
	if s.Operation != 0 {
		row.Coordinator = p.locate(s.Operation, s.Source)
	}
	if s.Depth() > 0 {
		for _, name := range s.Path() {
			row.Causes = append(row.Causes, p.redacted(name))
		}
		row.Causes = row.Causes[:len(row.Causes)-1]
	}
	return row
}

// locate returns the id of the coordinator of an operation, by its name if that says
// enough, or "".
func (p *Page) locate(id core.OperationID, name string) string {
	var found []*coordinator
	for _, c := range p.coordinators {
		if name == "" || c.Name() == name {
			found = append(found, c)
		}
	}
	if len(found) == 1 && name != "" {
		return found[0].id
	}
	for _, c := range found {
		if _, ok := c.Lookup(id); ok {
			return c.id
		}
	}
	return ""
}

// reasons returns why an operation, or all that it waits for, wait. The texts do not say
// for how long, so that they stay equal.
func (p *Page) reasons(c *coordinator, x core.Explanation, all bool) (rows []waitRow) {
	for _, r := range x.Reasons {
		if r.Operation != x.Operation && !all {
			continue
		}
		row := waitRow{Kind: r.Kind, Text: p.hidden(r).String(), Since: stamp(r.Since), Expires: stamp(r.Expires), Forced: stamp(r.Forced)}
		switch {
		case r.Signal.Operation != 0:
			row.ID, row.Coordinator = r.Signal.Operation, p.locate(r.Signal.Operation, r.Signal.Source)
		case r.Holder != 0 && r.Of == "" && r.Operation == x.Operation:
			row.ID, row.Coordinator = r.Holder, c.id
		case r.Holder != 0:
			row.ID, row.Coordinator = r.Holder, p.locate(r.Holder, r.Of)
		}
		rows = append(rows, row)
	}
	return rows
}

// hidden is a reason with redacted texts.
func (p *Page) hidden(r core.Reason) core.Reason {
	r.Key, r.What = p.redacted(r.Key), p.redacted(r.What)
	r.Signal.Name, r.Signal.Key = p.redacted(r.Signal.Name), p.redacted(r.Signal.Key)
	return r
}

// explain says why an operation waits.
func (p *Page) explain(c *coordinator, id core.OperationID) (e explained) {
	x, _ := c.Explain(id)
	e.WaitsFor = p.reasons(c, x, false)
	var texts []string
	for _, row := range e.WaitsFor {
		texts = append(texts, row.Text)
	}
	e.Waits = strings.Join(texts, "; ")
	return e
}

func (p *Page) redacted(text string) string {
	if text == "" {
		return ""
	}
	return p.opts.Redact(text)
}

// typeOf is all that is shown of items, values and payloads.
func typeOf(v any) string {
	if v == nil {
		return ""
	}
	return fmt.Sprintf("%T", v)
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z")
}
