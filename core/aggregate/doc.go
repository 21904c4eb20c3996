// Package aggregate computes sums, means and quantiles of typed signals over a
// sliding span of time: how many bytes were served in the last minute, how long it
// took at the 99th percentile, for which customers.
//
//	var Served = core.NewKind[Response]("response.served")
//
//	served, err := aggregate.New(sink, Served, time.Minute, aggregate.Options{})
//	...
//	defer served.Stop()
//
//	took := served.Summarize(func(r Response) float64 { return r.Took.Seconds() })
//	fmt.Println(took.Count, took.Mean, took.Quantile(0.99))
//
//	customer := func(s core.Signal, _ Response) string { return s.Key }
//	size := func(r Response) float64 { return float64(r.Size) }
//	for name, bytes := range aggregate.GroupBy(served, customer, size) { ... }
//
// An [Aggregator] keeps the facts of one [core.Kind] as they are raised, for as long
// as its span. It does not look at the sink's window, which may be shorter, and is
// as full as everybody else makes it. A fact that is taken back does not count any
// more.
//
// Every answer says how much of the span it is about. That is less than all of it
// while the aggregator is younger than its span, because it knows nothing of what
// was raised before it was made, and when there were more facts than it keeps:
//
//	if !took.Complete {
//		fmt.Println("only the last", took.Covered)
//	}
//
// What an answer covers it covers without gaps, so Sum / Covered.Seconds() is a rate
// per second even then. To count signals, without payloads, use a [core.Monitor].
package aggregate
