// Package aggregate computes sums, means and quantiles of typed signals over a sliding
// span of time. For example: how many bytes were served in the last minute, how long it
// took at the 99th percentile, for which customers.
//
//	var Served = signals.NewKind[Response]("response.served")
//
//	served, err := aggregate.New(sink, Served, time.Minute, aggregate.Options{})
//	...
//	defer served.Stop()
//
//	took := served.Summarize(func(r Response) float64 { return r.Took.Seconds() })
//	fmt.Println(took.Count, took.Mean, took.Quantile(0.99))
//
//	customer := func(s signals.Signal, _ Response) string { return s.Key }
//	size := func(r Response) float64 { return float64(r.Size) }
//	for name, bytes := range aggregate.GroupBy(served, customer, size) { ... }
//
// A fact is a signal of one [signals.Kind]. An [Aggregator] keeps each fact from the moment
// it is raised until it is older than the span. It does not use the sink's window, which
// may be shorter and which all signals share. A retracted fact no longer counts.
//
// Every answer says how much of the span it covers. It covers less than the span while
// the aggregator is younger than its span, because facts raised before it was made are
// unknown. It also covers less when there were more facts than it keeps:
//
//	if !took.Complete {
//		fmt.Println("only the last", took.Covered)
//	}
//
// There are no gaps within what an answer covers, so Sum / Covered.Seconds() is a rate
// per second even then. To count signals without payloads, use a [signals.Monitor].
package aggregate
