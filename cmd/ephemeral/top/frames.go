package top

import "time"

// The types of this file are what top reads of the page's JSON. A name there is the name of
// the field, and begins with a small letter. What a page does not send stays zero, so top
// also reads pages of other versions.

// A frame begins with the time of the server.
type frame struct{ Time time.Time }

func (f *frame) at() time.Time { return f.Time }

type overview struct {
	frame
	Title string
	Sinks []struct {
		Name                   string
		Stored, Held, Capacity int
		Raised                 uint64
	}
	Coordinators []coordinator
	Queues       []struct {
		Name   string
		Counts []struct {
			State string
			Items int
		}
		OldestMS int64
		Nodes    int
		Paused   bool
		Error    string
		Can      []string
	}
	Schedules []struct {
		Group, Name, When string
		Last, Next        time.Time
		Paused            bool
		Error             string
		Can               []string
	}
}

type coordinator struct {
	ID, Error                              string
	Enqueued, Succeeded, Failed, Cancelled uint64
	Refused, Dropped                       uint64
	Pending, Running, Suspended, Limit     int
	Paused, Closed                         bool
	Lanes, Classes                         []part
	Oldest                                 time.Time
	Throughput                             []int
	Gates                                  []gate
	Can                                    []string
}

// A part is a lane or a class.
type part struct {
	Name                    string
	Pending, Running, Limit int
}

type gate struct {
	Kind, Lane, Class, Pattern string
	Closed                     bool
	Matches                    uint64
	Signal                     signal
}

type signal struct {
	Seq         uint64
	Time        time.Time
	Name, Key   string
	Operation   int64
	Coordinator string
	Held        bool
}

type operations struct {
	frame
	Coordinator string
	Operations  []operation
}

type operation struct {
	ID                                     int64
	Key, Lane, Class, Status, Error, Waits string
	Enqueued, Started                      time.Time
	Progress                               struct{ Text string }
}

type explained struct {
	frame
	Operation   operation
	Explanation struct {
		Reasons []struct {
			Kind, Text     string
			Since, Expires time.Time
		}
	}
	Signals []signal
}

type signals struct {
	frame
	Sink    string
	Signals []signal
	Held    []signal
}
