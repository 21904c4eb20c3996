// Package bench measures the library beside other libraries and beside plain code.
//
// Measurements are data: a [Group] has [Row] values, and a row has sides that do the same
// thing. The first side is this library. Each other side may have a goal: the highest
// ratio of our time to its time. The benchmarks of this package run every side alone. The
// program compare runs the sides of a row in turns, in many rounds, and computes the
// ratios of each round.
//
// The rules, the same for every side:
//
//   - The body of every operation is the same. So are the concurrency limit and the
//     length of the queue, where a library has one.
//   - Time ends when the last operation has ended.
//   - A program makes some things once, such as a pool or a cache. They are made before
//     the loop.
//   - The heap holds the same [Ballast], because the cost of an allocation depends on the
//     size of the heap.
package bench
