// Package whatif answers what other limits would have done to the work that a coordinator has had.
//
// [Record] writes when each operation came, how long it ran, and when gates were shut. It writes no items, results
// or keys. Instead of a key, it writes a hash with a random seed: equal keys have equal hashes in one recording.
//
// [Run] lets the scheduler of core decide again, with the options that you ask about: other limits, lanes, classes and
// rates. No code of yours runs, and no time passes: a million operations take about a second. So a rule can be tried
// with the traffic of yesterday before anybody has to wait for it. [core.Class] has shadow limits for the same question about the traffic of now.
//
// Be careful with the answer: durations do not react to load. In the simulation each operation runs for as long as
// it ran when it was recorded, even if twice as many run beside it. An operation that never ran, because it was
// refused or cancelled, runs for as long as the one before it of the same lane and class.
//
// What the body does while it runs is not simulated. Items that it enqueues beyond a full queue wait for room in the
// simulation. The time that an operation spent in [core.Operation.Suspend] comes at the end of its run, and so does
// what it charged. Pauses happen as they were recorded. Changes by SetMaxConcurrency and SetClass do not: the options
// of a simulation are those that you ask about.
//
// Apart from that, operations start in the recorded order if the options are the recorded ones. There is one
// exception: while a queue is full and nothing can start, a call that looks into the coordinator can decide which of
// two items goes first. Examples are Stats, Cancel, and a Resume that changes nothing. They are not recorded.
package whatif
