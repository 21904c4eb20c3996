// Package progress reports how far long work is, as signals that pages and other
// parts of the program can look at when they care:
//
//	p, err := progress.New(sink, "ingest", int64(len(rows)), progress.Options{Every: 100})
//	if err != nil {
//		return err
//	}
//	defer p.Done()
//	for _, row := range rows {
//		...
//		p.Add(1)
//	}
//
// A reporter raises [SignalProgress] now and then, with its name as key and a
// [Report] as payload, and once more at the end. What it raised last, as long as it
// is in the window, is found with [Latest], or with [All] for a page; [Reports]
// gives the rest: subscriptions, history, the progress within one operation.
package progress
