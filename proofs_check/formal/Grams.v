(* Grams: the hash of a place is the number whose digits, newest first, are the last n+1 tokens of its tape.

   `dig f p i` is the token i places before p, or 0 where a separator lies in between (`alive` says that none does).
   Equal hashes are equal digits, and the hash of a place depends on no later one. *)
From Coq Require Import Arith Lia List Bool ZArith.
Import ListNotations.
Require Import Rasp Machine Program.

Section Grams.
Variable B : nat.
(* the i tokens before p, and p itself, are on one tape *)
Fixpoint alive (f : sequence) (p i : nat) : bool :=
  match i with 0 => negb (f p =? 0) | S j => alive f p j && (i <=? p) && negb (f (p - i) =? 0) end.
Definition dig (f : sequence) (p i : nat) := if alive f p i then f (p - i) else 0.
Fixpoint H (f : sequence) (p n : nat) := match n with 0 => f p | S i => dig f p (S i) + B * H f p i end.

Lemma alive_S f p i : alive f p (S i) = alive f p i && (S i <=? p) && negb (f (p - S i) =? 0).
Proof. reflexivity. Qed.

Lemma alive_nonzero f p i : alive f p i = true -> f (p - i) <> 0.
Proof.
  destruct i; intros A E; [simpl in A; rewrite Nat.sub_0_r in E | rewrite alive_S in A; apply andb_prop in A as [_ A]];
    rewrite E in A; discriminate.
Qed.

Lemma dig_0 f p : dig f p 0 = f p.
Proof. unfold dig; simpl. rewrite Nat.sub_0_r. destruct (Nat.eqb_spec (f p) 0); simpl; auto. Qed.

Lemma hash_loop_spec f : forall n i out bef sh p,
  (forall p, out p = H f p i) -> (forall p, bef p = flag (negb (alive f p i))) ->
  (forall p, sh p = if p <? S i then 0 else f (p - S i)) -> hash_loop B n out bef sh p = H f p (i + n).
Proof.
  induction n; intros i out bef sh p Ho Hb Hs; simpl; [rewrite Nat.add_0_r; auto |].
  replace (i + S n) with (S i + n) by lia.
  assert (Hb' : forall q, bor (is_sep sh) bef q = flag (negb (alive f q (S i)))).
  { intros q. unfold bor, is_sep, seq_map, tok_map. rewrite Hb, Hs, alive_S.
    destruct (Nat.ltb_spec q (S i)), (Nat.leb_spec (S i) q); try lia.
    - rewrite andb_false_r. simpl. destruct (alive f q i); reflexivity.
    - destruct (f (q - S i) =? 0), (alive f q i); reflexivity. }
  apply IHn.
  - intros q. unfold seq_map at 1. simpl H. unfold dig. unfold seq_map. rewrite Hb', Ho, Hs.
    destruct (alive f q (S i)) eqn:A; simpl flag; [| rewrite Nat.mul_0_r; auto].
    rewrite Nat.mul_1_r. destruct (Nat.ltb_spec q (S i)); auto.
    rewrite alive_S in A. destruct (Nat.leb_spec (S i) q); [lia |]. rewrite andb_false_r in A. discriminate.
  - exact Hb'.
  - intros q. rewrite shift_spec. destruct (Nat.ltb_spec q 1), (Nat.ltb_spec q (S (S i))); try lia; auto;
      rewrite Hs; destruct (Nat.ltb_spec (q - 1) (S i)); try lia; auto. f_equal; lia.
Qed.

Lemma hash_spec f n p : hash_n_gram B f n p = H f p n.
Proof.
  unfold hash_n_gram. rewrite (hash_loop_spec f n 0); auto.
  - intros q. unfold is_sep, tok_map. simpl. destruct (f q =? 0); auto.
  - intros q. apply shift_spec.
Qed.

Lemma H_below f p n : (forall q, f q < B) -> H f p n < B ^ (n + 1).
Proof.
  intros F. induction n; simpl; [specialize (F p); lia |].
  assert (dig f p (S n) < B) by (unfold dig; destruct alive; auto; specialize (F p); lia).
  replace (n + 1) with (S n) in * by lia. simpl in *. nia.
Qed.

Lemma H_inj f g p q n : (forall r, f r < B) -> (forall r, g r < B) ->
  H f p n = H g q n -> forall i, i <= n -> dig f p i = dig g q i.
Proof.
  intros F G. induction n; intros E i Hi.
  - replace i with 0 by lia. rewrite !dig_0. exact E.
  - simpl in E.
    assert (dig f p (S n) < B) by (unfold dig; destruct alive; auto; specialize (F p); lia).
    assert (dig g q (S n) < B) by (unfold dig; destruct alive; auto; specialize (G q); lia).
    assert (H f p n = H g q n) by nia.
    destruct (Nat.eq_dec i (S n)) as [-> | ?]; [nia | apply IHn; auto; lia].
Qed.

Lemma H_ext f g p q n : (forall i, i <= n -> dig f p i = dig g q i) -> H f p n = H g q n.
Proof.
  induction n; intros E; simpl; [specialize (E 0 (le_n 0)); rewrite !dig_0 in E; exact E |].
  rewrite E, IHn by auto. auto.
Qed.
End Grams.

(* ---- what depends on the past only ------------------------------------------------------------------------------------ *)
Definition agree (x y : sequence) (p : nat) := forall q, q <= p -> x q = y q.

Lemma alive_agree x y p i : agree x y p -> alive x p i = alive y p i.
Proof. intros A. induction i; [simpl; rewrite A; auto | rewrite !alive_S, IHi, (A (p - S i)) by lia; auto]. Qed.
Lemma H_agree B x y p n : agree x y p -> H B x p n = H B y p n.
Proof.
  intros A. apply H_ext. intros i _. unfold dig. rewrite (alive_agree x y) by auto. rewrite (A (p - i)) by lia. auto.
Qed.
Lemma count_agree x y p : agree x y p -> count x p = count y p.
Proof.
  induction p; intros A; [rewrite !count_0, (A 0) by lia; auto |].
  rewrite !count_S, (A (S p)), IHp by (auto; intros q ?; apply A; lia). auto.
Qed.
Lemma keys_agree B k n x y p : agree x y p ->
  map (fun f => f p) (hash_n_gram_iter B k x n) = map (fun f => f p) (hash_n_gram_iter B k y n).
Proof.
  intros A. unfold hash_n_gram_iter. destruct k; unfold map, seq_map; fold (count x p) (count y p);
    rewrite !hash_spec, (count_agree x y), (H_agree B x y) by auto; auto.
Qed.
