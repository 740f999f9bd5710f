"""The ledger service: reserve, charge, release, retain, reconcile."""
