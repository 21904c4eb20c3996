// Package reputation keeps scores, of users or addresses for instance, that are
// raised and lowered by what these do and decay exponentially as it becomes history:
//
//	scores, err := reputation.New[UserID](reputation.Options{HalfLife: 10 * time.Minute})
//	...
//	if scores.Update(user, -5) < -20 {
//		return errBlocked
//	}
//
// A score halves every half-life, continuously: after a time t it is 2^(-t/half-life)
// of what it was. That is computed when it is asked for; nothing runs meanwhile.
//
// Memory is bounded. Scores that have faded below a floor are forgotten. When there
// is no room for a new one, the score that is the nearest to 0 goes, so the worst
// reputations are remembered as well as the best. As all of them fade at the same
// rate, their order does not change by itself, which is what makes it cheap to know
// the smallest: an update costs O(log n).
//
// Changes are signals: [SignalUpdate] and [SignalInvalidate].
package reputation
