package statuspage

import (
	"encoding/json"
	"runtime/metrics"
)

// A programRow is what the Go runtime says about the program.
type programRow struct {
	Goroutines uint64  `json:"goroutines"`
	HeapBytes  uint64  `json:"heapBytes"` // objects, with those that are not yet collected
	GCs        uint64  `json:"gcs"`       // cycles since the start
	GCPercent  float64 `json:"gcPercent"` // share of the available processor time since the start, as of the last cycle
}

func program() (row programRow) {
	s := []metrics.Sample{
		{Name: "/sched/goroutines:goroutines"}, {Name: "/memory/classes/heap/objects:bytes"}, {Name: "/gc/cycles/total:gc-cycles"},
		{Name: "/cpu/classes/gc/total:cpu-seconds"}, {Name: "/cpu/classes/total:cpu-seconds"},
	}
	metrics.Read(s)
	row.Goroutines, row.HeapBytes, row.GCs = s[0].Value.Uint64(), s[1].Value.Uint64(), s[2].Value.Uint64()
	if all := s[4].Value.Float64(); all > 0 {
		row.GCPercent = 100 * s[3].Value.Float64() / all
	}
	return row
}

// more returns the fields of a view that make no frame when only they change: those of the
// program in the overview.
func more(view string) []byte {
	if view != "overview" {
		return nil
	}
	body, _ := json.Marshal(program())
	return append(append([]byte(`"program":`), body...), ',')
}
