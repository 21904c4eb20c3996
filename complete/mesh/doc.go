// Package mesh is the part of package complete for signals that processes share over NATS.
// It has what atoms/mesh exports, under the names that they would have in package complete.
// It is a separate package, so that programs that import complete do not link the client of
// NATS.
package mesh
