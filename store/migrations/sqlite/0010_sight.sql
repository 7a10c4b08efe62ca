-- unreachable: names of the targets that a replica cannot reach; reachable: those that it reaches while another one
-- cannot.
ALTER TABLE replicas ADD COLUMN unreachable TEXT NOT NULL DEFAULT '';
ALTER TABLE replicas ADD COLUMN reachable TEXT NOT NULL DEFAULT '';
