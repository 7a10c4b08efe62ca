// Package transport sends the scripts of the lock library to Redis over connections of its
// own. Scripts that need not go at once share round trips under load ([Server.Eval]), and
// renewals that are due together go together ([Batch]). Nothing is ever sent twice by
// itself: only who knows what a script does may repeat it.
package transport
