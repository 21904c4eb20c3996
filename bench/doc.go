// Package bench measures the library beside what it is compared with.
//
// What is measured is data: a [Group] of [Row] values, each with the sides that do
// the same thing, ours first, and how our time should relate to theirs. The
// benchmarks of this package run every side alone, as go test does; the program
// compare runs the sides of a group in turn, again and again, and relates what
// was measured close together.
//
// The rules, the same for every side:
//
//   - The body of every operation is the same, and so are the limit of what runs
//     at once and the bound of the queue, where a library has one.
//   - What is timed ends when the last operation has ended.
//   - Nothing is made in the loop that a program would make once.
//   - The heap holds the same [Ballast], because the cost of an allocation
//     depends on how much lives.
package bench
