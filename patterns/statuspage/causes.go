package statuspage

import "github.com/ephemeralgo/ephemeral/core"

// A causeRow is a signal that led to another one.
type causeRow struct {
	Name        string           `json:"name"`
	Operation   core.OperationID `json:"operation,omitempty"`   // that raised it
	Coordinator string           `json:"coordinator,omitempty"` // "": the page does not show that operation, or no longer
}

func (p *Page) causes(s core.Signal) (rows []causeRow) {
	for _, c := range s.Causes() {
		row := causeRow{Name: p.redacted(c.Name), Operation: c.Operation}
		if c.Operation != 0 {
			row.Coordinator = p.locate(c.Operation, "")
		}
		rows = append(rows, row)
	}
	return rows
}
