// Package reputation keeps scores that decay with time, for example of users or
// addresses. Each action of a user raises or lowers the score:
//
//	scores, err := reputation.New[UserID](reputation.Options{HalfLife: 10 * time.Minute})
//	...
//	if scores.Update(user, -5) < -20 {
//		return errBlocked
//	}
//
// A score halves every half-life, continuously: after a time t it is multiplied by
// 2^(-t/half-life). This is computed when the score is read; no goroutine runs.
//
// Memory is bounded. Scores that have decayed below a floor are forgotten. When there is
// no room for a new score, the score nearest to 0 is evicted, so the worst reputations
// are kept as well as the best. All scores decay at the same rate, so their order does
// not change with time. An update costs O(log n).
//
// Changes are signals: [Updates] and [Invalidations].
package reputation
