DROP TABLE hold_allocation;
DROP TABLE hold;
DROP TABLE transfer;
DROP TABLE lot;
DROP TABLE account;
DROP TABLE price;
DROP FUNCTION refuse_change_v1();
