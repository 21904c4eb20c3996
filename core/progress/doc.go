// Package progress reports the progress of long work as signals. Status pages and other
// parts of the program can read them:
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
// A reporter raises [Reports] after some steps and at the end, with its name as
// key and a [Report] as payload. [All] returns the newest report of each reporter that is
// in the sink's window. [Reports] is the
// kind, for subscriptions, for history and for the progress within one operation.
package progress
