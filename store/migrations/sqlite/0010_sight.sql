-- What replicas say of their ways to the targets: blind are the names of those that one
-- cannot reach, sees of those that it reaches and another one cannot.
ALTER TABLE replicas ADD COLUMN blind TEXT NOT NULL DEFAULT '';
ALTER TABLE replicas ADD COLUMN sees TEXT NOT NULL DEFAULT '';
