// Package flightrecorder writes the last seconds of the Go scheduler to a file when a signal says
// that something went wrong. The file says what ran, what waited and for what.
//
//	recorder, err := flightrecorder.New(sink, flightrecorder.Options{
//		On:           "breaker.opened.*, durable.lease.lost",
//		Dir:          "/var/lib/shop/flights",
//		Coordinators: []core.Inspector{uploads, orders},
//	})
//	if err != nil {
//		return err
//	}
//	defer recorder.Close()
//
// A recording is two files of one name. The trace is for `go tool trace`. The report is JSON: for each operation that
// had not ended, why it waited, and the newest signals of the sink. The files have mode 0600. Keys and signal names are in
// both; items and payloads are not.
//
// The number of recordings is bounded by Keep, their size by MaxBytes, and their frequency by Pause. [Recorded] says where
// a recording is, and [Failed] why there is none.
package flightrecorder
