-- Locks the row of a resource until the transaction ends, and raises its fence.
-- $1 resource, $2 fence. Returns the greatest fence seen: go on only if it is $2.
INSERT INTO fences (resource, fence) VALUES ($1, $2)
ON CONFLICT (resource) DO UPDATE SET fence = greatest(fences.fence, excluded.fence)
RETURNING fence
