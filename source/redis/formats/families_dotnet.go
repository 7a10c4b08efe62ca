package formats

// dotnetFamilies are the lock libraries of .NET.
var dotnetFamilies = []*family{
	familyHangfire, familyRedLockNet,
	familyDistributedLockMutex, familyDistributedLockReaders, familyDistributedLockSemaphore,
}
